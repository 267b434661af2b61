//! Makes the paths of calls absolute.

/// Resolves a path against a folder. Windows paths with a drive are already absolute.
pub fn absolute(path: &str, folder: Option<&str>) -> String {
    let drive = path.as_bytes().get(1) == Some(&b':');
    match folder {
        Some(folder) if !path.starts_with('/') && !drive => {
            format!("{}/{}", folder.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path))
        }
        _ => path.to_owned(),
    }
}
