//! The charts of the page of benchmarks, made from the tables of ARCHITECTURE.md, and the versions of the peers.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use ops_tests_book::pages::root;

mod golden;

/// A chart: its file, its title, the anchor of its table, the column of names, and the columns of values.
struct Chart {
    file: &'static str,
    title: &'static str,
    anchor: &'static str,
    names: usize,
    values: &'static [(usize, &'static str)],
}

const CHARTS: [Chart; 4] = [
    Chart {
        file: "check.svg",
        title: "cargo check of generated code, CPU seconds (less is better)",
        anchor: "m-check",
        names: 0,
        values: &[(2, "the cheapest other generator"), (4, "ops")],
    },
    Chart {
        file: "check-memory.svg",
        title: "cargo check of generated code, MB (less is better)",
        anchor: "m-check",
        names: 0,
        values: &[(3, "the cheapest other generator"), (5, "ops")],
    },
    Chart {
        file: "calls.svg",
        title: "calls a second to another process, 64 in flight (more is better)",
        anchor: "m-calls",
        names: 0,
        values: &[(1, "calls/s")],
    },
    Chart {
        file: "typebox.svg",
        title: "normalise and check, times as fast as TypeBox (more is better)",
        anchor: "m-typebox",
        names: 0,
        values: &[(1, "normalise and check"), (2, "with parsing and serialising")],
    },
];

/// The rows of the first table between two anchors, without its head.
fn table(text: &str, anchor: &str) -> Vec<Vec<String>> {
    let start = format!("ANCHOR: {anchor} ");
    let part = text.split(&start).nth(1).unwrap_or_else(|| panic!("ARCHITECTURE.md has no anchor {anchor}"));
    let part = part.split("ANCHOR_END").next().unwrap();
    let rows = part.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn charts() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for chart in CHARTS {
        let rows = table(&text, chart.anchor);
        assert!(rows.len() > 1, "{}", chart.anchor);
        let number = |row: &[String], column: usize| -> f64 {
            let cell = &row[column];
            cell.replace(',', "")
                .split(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap_or_else(|_| panic!("{}: `{cell}` is no number", chart.anchor))
        };
        let bars: Vec<(String, Vec<f64>)> = rows
            .iter()
            .map(|row| {
                (row[chart.names].clone(), chart.values.iter().map(|(column, _)| number(row, *column)).collect())
            })
            .collect();
        let legend: Vec<&str> = chart.values.iter().map(|(_, name)| *name).collect();
        golden::check(&Path::new("docs/src/charts").join(chart.file), &draw(chart.title, &legend, &bars));
    }
}

const COLOURS: [&str; 2] = ["#8d99ae", "#2a6f97"];

/// Horizontal bars, grouped by name.
fn draw(title: &str, legend: &[&str], bars: &[(String, Vec<f64>)]) -> String {
    let most = bars.iter().flat_map(|(_, values)| values).fold(0.0_f64, |most, value| most.max(*value));
    let (left, width, bar) = (170.0, 420.0, 16.0);
    let group = bar * legend.len() as f64 + 12.0;
    let height = 64.0 + group * bars.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 {height}\" width=\"700\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{title}</title>\n<rect width=\"700\" height=\"{height}\" \
         fill=\"#ffffff\"/>\n<text x=\"10\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n"
    );
    for (index, name) in legend.iter().enumerate() {
        let colour = COLOURS[if legend.len() == 1 { 1 } else { index }];
        let x = 10.0 + 260.0 * index as f64;
        writeln!(svg, "<rect x=\"{x}\" y=\"32\" width=\"12\" height=\"12\" fill=\"{colour}\"/>").unwrap();
        writeln!(svg, "<text x=\"{}\" y=\"43\">{name}</text>", x + 18.0).unwrap();
    }
    for (at, (name, values)) in bars.iter().enumerate() {
        let top = 58.0 + group * at as f64;
        writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>", left - 8.0, top + group / 2.0 - 2.0)
            .unwrap();
        for (index, value) in values.iter().enumerate() {
            let colour = COLOURS[if legend.len() == 1 { 1 } else { index }];
            let (y, long) = (top + bar * index as f64, (value / most * width * 10.0).round() / 10.0);
            writeln!(svg, "<rect x=\"{left}\" y=\"{y}\" width=\"{long}\" height=\"{}\" fill=\"{colour}\"/>", bar - 2.0)
                .unwrap();
            writeln!(svg, "<text x=\"{}\" y=\"{}\">{value}</text>", left + long + 6.0, y + 11.0).unwrap();
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Costs over sizes, each as multiples of the first, on logarithmic axes: what costs as much as its size is a diagonal.
#[test]
fn growth() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = table(&text, "m-growth");
    let lines: Vec<(String, Vec<f64>)> = rows
        .iter()
        .map(|row| {
            let costs: Vec<f64> = row[3..].iter().map(|cell| cell.replace(',', "").parse().unwrap()).collect();
            assert_eq!(costs.len(), 4, "{row:?}");
            (
                format!("{}, from {}", row[0].replace('`', ""), row[1]),
                costs.iter().map(|cost| cost / costs[0]).collect(),
            )
        })
        .collect();
    assert!(lines.len() > 4, "{rows:?}");
    golden::check(
        Path::new("docs/src/charts/growth.svg"),
        &draw_lines("cost over size, in multiples of the first", &lines),
    );
}

const LINE_COLOURS: [&str; 7] = ["#2a6f97", "#bc4749", "#6a994e", "#f4a259", "#7b2cbf", "#5c677d", "#b08968"];

/// Lines over sizes that are each four times the one before, with a dashed diagonal, and what they are below.
fn draw_lines(title: &str, lines: &[(String, Vec<f64>)]) -> String {
    let (left, top, width, plot) = (60.0, 40.0, 600.0, 300.0);
    let height = top + plot + 50.0 + 18.0 * (lines.len() as f64 + 1.0);
    // From a fourth to 256 times the first cost, in fourfold steps.
    let x = |step: usize| left + width * step as f64 / 3.0;
    let y = |ratio: f64| ((top + plot * (1.0 - (ratio.log(4.0) + 1.0) / 5.0)) * 10.0).round() / 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 {height}\" width=\"700\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{title}</title>\n<rect width=\"700\" height=\"{height}\" \
         fill=\"#ffffff\"/>\n<text x=\"10\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n"
    );
    for (step, ratio) in [1.0, 4.0, 16.0, 64.0].into_iter().enumerate() {
        let (at, level) = (x(step), y(ratio));
        writeln!(svg, "<line x1=\"{left}\" y1=\"{level}\" x2=\"{}\" y2=\"{level}\" stroke=\"#dddddd\"/>", left + width)
            .unwrap();
        writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{ratio}</text>", left - 8.0, level + 4.0).unwrap();
        writeln!(svg, "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">x {ratio}</text>", top + plot + 18.0).unwrap();
    }
    let mut line = |index: usize, name: &str, costs: &[f64], look: &str| {
        let points: Vec<String> =
            costs.iter().enumerate().map(|(step, ratio)| format!("{},{}", x(step), y(*ratio))).collect();
        writeln!(svg, "<polyline points=\"{}\" fill=\"none\" stroke-width=\"2\" {look}/>", points.join(" ")).unwrap();
        let level = top + plot + 44.0 + 18.0 * index as f64;
        writeln!(svg, "<line x1=\"10\" y1=\"{level}\" x2=\"40\" y2=\"{level}\" stroke-width=\"2\" {look}/>").unwrap();
        writeln!(svg, "<text x=\"48\" y=\"{}\">{name}</text>", level + 4.0).unwrap();
    };
    for (index, (name, costs)) in lines.iter().enumerate() {
        line(index, name, costs, &format!("stroke=\"{}\"", LINE_COLOURS[index % LINE_COLOURS.len()]));
    }
    line(lines.len(), "as much as the size", &[1.0, 4.0, 16.0, 64.0], "stroke=\"#999999\" stroke-dasharray=\"6 4\"");
    svg.push_str("</svg>\n");
    svg
}

/// The version of a crate in a lock file.
fn locked(lock: &str, name: &str) -> String {
    let text = fs::read_to_string(root().join(lock)).unwrap();
    let package = text.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
    package.unwrap_or_else(|| panic!("{lock} has no {name}")).split('"').next().unwrap().to_owned()
}

#[test]
fn versions() {
    let mut text = String::from("| peer | version |\n|---|---|\n");
    for (name, lock) in [
        ("jsonrpsee", "tests/calls/Cargo.lock"),
        ("tarpc", "tests/calls/Cargo.lock"),
        ("tonic", "tests/calls/Cargo.lock"),
        ("axum", "Cargo.lock"),
        ("rmcp", "Cargo.lock"),
        ("async-nats", "Cargo.lock"),
        ("redis", "Cargo.lock"),
    ] {
        writeln!(text, "| {name} | {} |", locked(lock, name)).unwrap();
    }
    let peers = fs::read_to_string(root().join("tests/bench/peers")).unwrap();
    let list = peers.split("versions=(").nth(1).unwrap().split(')').next().unwrap();
    for pair in list.split_whitespace() {
        let (name, version) = pair.split_once('=').unwrap();
        writeln!(text, "| {} | {version} |", name.trim_matches(['[', ']'])).unwrap();
    }
    golden::check(Path::new("docs/generated/versions.md"), &text);
}
