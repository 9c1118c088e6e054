"""Writes a finished dataset in another form, for programs that read that.

A format is a module of this folder and an entry in `formats.FORMATS`. The module has two functions:

    def refusal(dataset: Dataset, table: str) -> str:
        '''Returns why the dataset cannot be written so, in words; empty where it can.'''

    def write(export: Export) -> None:
        '''Writes the files.'''

`refusal` looks at the columns, never at the name of a dataset, so that it takes those that are yet
to come. `write` gets the rows from the `Export`, and opens every file by it:

    for split in export.splits:
        for part in export.parts(split):                # rows of one file, in the order of ids
            path = f"data/{part.name}.jsonl"
            if not export.has(path):                    # an earlier, stopped run wrote it
                with export.file(path, rows=part.rows) as stream:
                    for record in part.records():       # id, key, row, pictures
                        stream.write(...)

A file appears when it is complete, and is then noted with its SHA-256. `part.pieces()` gives Arrow
tables in place of records, `export.rows(table)` the rows of another table.
`run.export_dataset` does the rest: checks, the note `eqforge-export.json`, going on, overwriting. A
file has to have the same bytes however many files the dataset has, which it has if it follows from
the rows and their order alone.
"""
