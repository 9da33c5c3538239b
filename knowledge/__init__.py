"""Facts with source and date: typed reads over one read-only SQLite file, and the data it is built from."""
