"""The paper's experiments: the bundled model's training, and the tables and figures."""
