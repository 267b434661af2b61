//! Icons of the menu, drawn with one stroke width on a grid of twenty.

use super::html::Html;

/// An icon by name, as SVG that takes the colour of the text around it.
pub(super) fn icon(name: &str) -> Html {
    let path = match name {
        "home" => "M3 9.2 10 3.5l7 5.7v7.3h-4.7v-4.6H7.7v4.6H3z",
        "sessions" => "M3 4.5h14v9H9l-4 3v-3H3zM6 7.7h8M6 10.4h5",
        "search" => "M8.7 14.4a5.7 5.7 0 1 1 0-11.4 5.7 5.7 0 0 1 0 11.4zM12.8 12.8 17 17",
        "files" => "M5 2.8h6l4 4v10.4H5zM11 2.8v4h4M7.5 10.5h5M7.5 13.5h5",
        "usage" => "M3 17h14M5 17V10.5M8.4 17V5M11.7 17V8M15 17V3",
        "tools" => {
            "M11.4 8.6 4.3 15.7a1.4 1.4 0 0 0 2 2l7.1-7.1M16.6 5.1 14 7.7l-1.8-.1-.1-1.8 2.6-2.6a4 4 0 0 0-5 5M10 10a4 4 0 0 0 6.6-4.9"
        }
        "insights" => "M7.4 13.6a4.9 4.9 0 1 1 5.2 0c-.6.5-.8 1-.8 1.7H8.2c0-.7-.2-1.2-.8-1.7zM8.3 17.5h3.4",
        "library" => "M4 3.2h3.2v13.6H4zM8.6 3.2h3.2v13.6H8.6zM13 4l2.8-.6L18 16.2l-2.8.6z",
        "trust" => "M10 2.7 16 5v4.6c0 3.9-2.5 6.4-6 7.7-3.5-1.3-6-3.8-6-7.7V5zM7.4 9.9l1.9 1.9 3.4-3.7",
        "settings" => "M3 6h7M14.5 6H17M12.2 3.8v4.4M3 14h2.5M10 14h7M7.8 11.8v4.4",
        _ => "M4 10h12",
    };
    Html(format!("<svg class=\"icon\" viewBox=\"0 0 20 20\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>"))
}
