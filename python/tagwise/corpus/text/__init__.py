"""Raw text: the tokenizer, character spans, and the formats that hold raw text."""
