"""Commands for people who work on the course; nothing here is installed with the package."""
