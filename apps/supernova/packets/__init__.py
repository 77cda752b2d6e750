"""Alert packets of ZTF and Rubin as rows: one decoder, one form, whatever the schema."""
