"""Writes a finished dataset in another form, for programs that read that.

A format is an entry of `formats.FORMATS`, and of `WRITERS` in a module of this folder: a function
that writes the files, and perhaps one that says why a dataset cannot be written so. The writer gets
the rows from the `Export`, and opens every file by it:

    def _write(export: Export) -> None:
        for part in export.all_parts():                 # rows of one file, in the order of ids
            path = f"data/{part.name}.jsonl"
            if not export.has(path):                    # an earlier, stopped run wrote it
                with export.file(path, rows=part.rows) as stream:
                    for record in part.records():       # id, key, row, pictures
                        stream.write(...)

    WRITERS: Final = {"lines": Writer(_write)}

A file appears when it is complete, and is then noted with its SHA-256. `part.pieces()` gives Arrow
tables in place of records. `run.export_dataset` does the rest: checks, the note
`eqforge-export.json`, going on, overwriting. A file has to have the same bytes however many files
the dataset has, which it has if it follows from the rows and their order alone.
"""
