"""What runs in the peers' environments: the standard library and the peer, nothing of helm-ext."""
