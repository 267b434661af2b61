//! Makes the paths of calls absolute.

/// A path from the folder it was named in; Windows paths with a drive are whole already.
pub fn absolute(path: &str, folder: Option<&str>) -> String {
    let drive = path.as_bytes().get(1) == Some(&b':');
    match folder {
        Some(folder) if !path.starts_with('/') && !drive => {
            format!("{}/{}", folder.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path))
        }
        _ => path.to_owned(),
    }
}
