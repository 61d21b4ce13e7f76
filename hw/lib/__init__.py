"""Base of all blocks: parameters, streams, pipelines, memories."""
