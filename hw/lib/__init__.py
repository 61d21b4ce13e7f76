"""What every block is built on: parameters, streams, pipelines, memories."""
