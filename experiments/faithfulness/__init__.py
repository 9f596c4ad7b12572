"""Which method should one use? Every map measured on encoders, decoders and a ViT, and where the truth is known, against it."""
