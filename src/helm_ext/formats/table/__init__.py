"""Tables of questions and answers: CSV, JSON, Parquet, saved datasets (docs/table.md).

options.py        what a run entry, or a mapping file, says of a table
mapping_file.py   NAME.table.json
table.py          what every kind of table is to the rest ...
delimited.py      ... CSV and TSV
json_tables.py    ... JSON Lines, lists of objects, objects that hold rows
arrow.py          ... Parquet, folders of `save_to_disk`, datasets of the Hub
cells.py          values of cells
layouts.py        what is known of tables by their structure: public datasets ...
tool_layouts.py   ... and what other tools write
roles.py          which column is what
values.py         what the cells of one row say
profile.py        what holds of all rows
rows.py           cells ──▶ rows
loading.py        from arguments to an opened table
"""
