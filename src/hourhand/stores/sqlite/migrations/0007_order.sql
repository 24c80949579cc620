-- The nominal time of the same job directly before a planned one, where it is so near that both may be claimed ahead of
-- their time: a later run is not taken ahead while the one before it still waits. NULL: there is none, or it is of no concern.
ALTER TABLE planned ADD COLUMN after_at INTEGER;
