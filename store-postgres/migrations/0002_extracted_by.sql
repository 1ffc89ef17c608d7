-- Which extractor found a fact first, by name and version; NULL where it was told directly or before this was kept.
ALTER TABLE fact ADD COLUMN extracted_by text COLLATE "C";
