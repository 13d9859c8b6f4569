"""Innodata Dataset Hub bundles: chat records, lowered to HELM's chat method (docs/innodata.md).

options.py     arguments of a run entry
loading.py     a bundle is read and checked, and becomes an EvalSet
replies.py     replies recorded earlier
lowering.py    records as HELM's instances, and what reports can group them by
writing.py     EvalSet ──▶ bundle
hub/           bundles and their records, and the hub that keeps versions of them
"""
