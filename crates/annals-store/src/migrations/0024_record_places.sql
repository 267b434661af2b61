-- A hit of a search is a place in a file, and a file of a connector has thousands of records.
drop index record_by_file;
create index record_by_place on record (file, byte_offset);
