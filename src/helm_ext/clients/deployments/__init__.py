"""Models that a user adds to HELM's folder of local configurations, `prod_env`.

named_list   a YAML file with a list of entries that have names, changed as text
entries      what HELM is told of a model: a deployment, a tokenizer, metadata
probing      what a server knows of what runs may ask for
"""
