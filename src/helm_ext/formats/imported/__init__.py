"""What importers share: files of other tools, and tables, on their way to an EvalSet.

    bytes ──an importer's `open`──▶ rows ──reader──▶ the states of an adapter_spec file ──▶ EvalSet

An importer is one package beside this one: it says which files are its own, and yields their rows (`row`). How rows are
checked, labelled, sampled, scored and digested is said once, in `request_states`, on which this package is built.
"""
