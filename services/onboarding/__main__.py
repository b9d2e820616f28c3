from libs.runtime.process import run
from services.onboarding.app import serve
from services.onboarding.settings import Settings

if __name__ == "__main__":
    run(Settings, serve)
