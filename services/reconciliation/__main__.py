from libs.runtime.process import run
from services.reconciliation.app import serve
from services.reconciliation.settings import Settings

if __name__ == "__main__":
    run(Settings, serve)
