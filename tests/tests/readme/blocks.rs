//! The README, taken apart: fenced blocks, and commands in them and in the text.

use std::fs;

use ops_tests::corpus::root;

/// A fenced block.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The word behind the fence.
    pub(crate) language: String,
    /// The number of its first line.
    pub(crate) line: usize,
    /// Its lines, each with its end.
    pub(crate) text: String,
}

impl Block {
    /// Its first line.
    pub(crate) fn first(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// The README.
#[derive(Debug)]
pub(crate) struct Readme {
    blocks: Vec<Block>,
    /// Everything but the blocks; a block is as many empty lines.
    pub(crate) prose: String,
}

impl Readme {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string(root().join("README.md")).unwrap();
        let (mut blocks, mut prose) = (Vec::new(), String::new());
        let mut open: Option<Block> = None;
        for (number, line) in (1..).zip(text.lines()) {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(language)) => {
                    open = Some(Block { language: language.to_owned(), line: number + 1, text: String::new() });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(block), None) => block.text.extend([line, "\n"]),
                (None, None) => prose.push_str(line),
            }
            prose.push('\n');
        }
        assert!(open.is_none(), "README.md: the block of line {} does not end", open.unwrap_or_default().line);
        Self { blocks, prose }
    }

    /// All blocks.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }

    /// The blocks of a language.
    pub(crate) fn blocks(&self, language: &str) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.language == language)
    }

    /// The lines of shell blocks without their comments, and what the text has between backticks that is a command or
    /// the path of a file; each with the number of its line.
    pub(crate) fn commands(&self) -> Vec<(usize, String)> {
        let lines = self.blocks("sh").flat_map(|block| (block.line..).zip(block.text.lines()));
        let mut commands: Vec<(usize, String)> = lines
            .map(|(number, line)| (number, line.split(" #").next().unwrap_or_default().trim().to_owned()))
            .filter(|(_, line)| !line.is_empty())
            .collect();
        let mut number = 1;
        for (index, piece) in self.prose.split('`').enumerate() {
            let is_command =
                ["cargo ", "ops ", "./", ".ci/", "examples/", "tests/"].iter().any(|start| piece.starts_with(start));
            if index % 2 == 1 && is_command {
                commands.push((number, piece.replace('\n', " ")));
            }
            number += piece.matches('\n').count();
        }
        commands
    }
}
