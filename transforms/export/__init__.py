"""Writes a finished dataset in other formats.

A format is an entry of `formats.FORMATS`, and of `WRITERS` in a module of this folder: a function
that writes the files, and optionally one that explains why a dataset cannot have the format. The
writer gets rows from the `Export`, and opens every file through it:

    def _write(export: Export) -> None:
        for part in export.all_parts():                 # rows of one file, in the order of ids
            path = f"data/{part.name}.jsonl"
            if not export.has(path):                    # an earlier, stopped run wrote it
                with export.file(path, rows=part.rows) as stream:
                    for record in part.records():       # id, key, row, pictures
                        stream.write(...)

    WRITERS: Final = {"lines": Writer(_write)}

A file appears when it is complete; the note then records its SHA-256. `part.pieces()` gives Arrow
tables instead of records. `run.export_dataset` does the rest: checks, the note
`eqforge-export.json`, resuming, overwriting. The bytes of a file must depend on the rows and their
order alone, not on the number of files of the dataset.
"""
