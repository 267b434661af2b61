-- What every run asks before it knows whether anything is new: answered without reading all files and sessions.
create index file_by_reader on file (instance, reader_version) where twin_of is null;
create index session_by_folder on session (instance, cwd) where cwd is not null;
create index session_gone on session (instance) where gone_at is not null;
