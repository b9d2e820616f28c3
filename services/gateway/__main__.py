"""`python -m services.gateway [--processes N]`."""

from services.gateway.processes import main

if __name__ == "__main__":
    main()
