//! Lists in lines of a bounded width, for code that is too regular to need a formatter.

const WIDTH: usize = 120;

/// The content of brackets: on one line with the brackets if it is short, else on lines of its own.
pub(super) fn inside(items: Vec<String>, indent: &str) -> String {
    let joined = items.join(", ");
    if indent.len() + joined.len() < WIDTH - 60 {
        return joined;
    }
    format!("\n{}{indent}", lines(items.into_iter(), &format!("{indent}    ")))
}

/// Lines of as many items as fit.
pub(super) fn lines(items: impl Iterator<Item = String>, indent: &str) -> String {
    fill(items, indent, WIDTH)
}

/// Lines of as many items as fit in a width.
pub(super) fn fill(items: impl Iterator<Item = String>, indent: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for item in items {
        let length = item.chars().count() + 2;
        if used > 0 && used + length <= width {
            lines.push(' ');
        } else {
            if used > 0 {
                lines.push('\n');
            }
            lines.push_str(indent);
            used = indent.len();
        }
        used += length;
        lines.push_str(&item);
        lines.push(',');
    }
    lines.push('\n');
    lines
}
