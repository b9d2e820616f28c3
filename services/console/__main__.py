"""`python -m services.console`."""

from libs.runtime.process import run
from services.console.app import serve
from services.console.settings import Settings

if __name__ == "__main__":
    run(Settings, serve)
