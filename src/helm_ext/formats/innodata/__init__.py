"""Innodata Dataset Hub bundles: chat records, lowered to HELM's chat method (docs/innodata.md).

loading.py     arguments of a run entry; a bundle is read and checked, and becomes an EvalSet
replies.py     records as HELM's instances, with replies recorded earlier, and what reports can group them by
hub/           bundles and their records, and the hub that keeps versions of them
"""
