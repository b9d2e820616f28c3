from libs.runtime.process import run
from services.payments.app import serve
from services.payments.settings import Settings

if __name__ == "__main__":
    run(Settings, serve)
