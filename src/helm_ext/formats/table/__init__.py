"""Tables of questions and answers: CSV, JSON, Parquet, saved datasets (docs/table.md).

    arguments ──▶ table (imported.tables, arrow) ──▶ roles of columns (layouts) ──▶ records ──profile──▶ rows

arrow.py     Parquet, folders of `save_to_disk`, datasets of the Hub
layouts.py   what is known of tables by their structure: public datasets, and what other tools write
roles.py     what a run entry, or a mapping file, says of a table; which column is what
records.py   what the cells of one row say
profile.py   what holds of all rows, and records as rows
loading.py   from arguments to an opened table
"""
