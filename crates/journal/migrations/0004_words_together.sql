-- Words go into the index, and out of it, together: a trigger would have the index write out what it holds for each row.
DROP TRIGGER passage_added;
DROP TRIGGER passage_removed;
