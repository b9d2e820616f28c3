from libs.runtime.process import run
from services.provider_sandbox.app import serve
from services.provider_sandbox.settings import Settings

if __name__ == "__main__":
    run(Settings, serve)
