from libs.runtime.process import run
from services.webhook_dispatcher.app import serve
from services.webhook_dispatcher.settings import Settings

if __name__ == "__main__":
    run(Settings, serve)
