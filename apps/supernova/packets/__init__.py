"""Alert packets of ZTF and Rubin as rows, with one decoder and one form for all schemas."""
