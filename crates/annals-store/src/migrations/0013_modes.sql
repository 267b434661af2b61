-- The permissions of a file, so that a restored one has them. Unknown in older archives until the file changes.
alter table file add column mode integer;
