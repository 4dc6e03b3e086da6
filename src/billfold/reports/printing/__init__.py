"""How a document looks on paper, whatever it says: one layout of letterhead, summary, charts, tables and notes."""
