from libs.runtime.process import run
from services.ledger_read.app import serve
from services.ledger_read.settings import Settings

if __name__ == "__main__":
    run(Settings, serve)
