"""The command `billfold`, and `python -m billfold`."""


def main() -> None:
    """Run the command line. It is imported here so that importing this module costs nothing."""
    from billfold.interfaces.cli.app import app  # noqa: PLC0415

    app()


if __name__ == "__main__":
    main()
