"""`python -m negvec`: the command line."""

from negvec.cli import main

if __name__ == "__main__":
    main()
