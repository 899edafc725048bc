//! What a step asks a program for: `exec`, and the variables that the program gives.

use super::ScenarioInputs;
use super::body::below;
use super::draft::variable_of;
use super::fault::{Read, bail, fault};
use super::fields::{Fields, one_or_more, text};
use super::names::Names;
use super::request::CompiledRequest;
use super::response::check_variable;
use super::template;
use super::tree::Node;
use knee_load::quantity::quoted;
use knee_load::session::TemplatePiece;
use knee_load::session::{Ask, Program};
use knee_load::spec::Part;

/// The most programs of a scenario: each worker has one process of each.
const PROGRAMS_MAX: usize = 20;
/// The most arguments of a program.
const ARGUMENTS_MAX: usize = 100;

/// Reads `exec` and `gives` of a step. The variables have values from here on.
pub(super) fn read(
    fields: &Fields<'_>,
    names: &mut Names,
    programs: &mut Vec<Program>,
    inputs: &mut dyn ScenarioInputs,
) -> Read<Option<Ask>> {
    let (exec, gives) = match (fields.entry("exec"), fields.entry("gives")) {
        (None, None) => return Ok(None),
        (Some(exec), Some(gives)) => (exec, gives),
        (Some(exec), None) => {
            bail!(
                exec.at,
                "'exec' lacks 'gives' beside it, the variables that the program sets: write \
                        gives: signature"
            );
        }
        (None, Some(gives)) => {
            bail!(gives.at, "'gives' belongs to 'exec': write exec: ./sign.py beside it");
        }
    };
    let program = program(&exec.value, programs, inputs)?;
    let tells = known(names);
    let mut given: Vec<(String, u16)> = Vec::new();
    for node in one_or_more(&gives.value) {
        let name = &text(node, "the name of a variable")?.text;
        check_variable(name, node.at)?;
        if given.iter().any(|(other, _)| **other == **name) {
            bail!(node.at, "{} stands here twice: leave one out", quoted(name));
        }
        given.push((name.to_string(), variable_of(name, node.at, names, true)?));
    }
    if given.is_empty() {
        bail!(gives.value.at, "no variable: write gives: signature");
    }
    let tells = tells.into_iter().filter(|(_, value)| !is_given(&given, value));
    Ok(Some(Ask { program, tells: tells.collect(), gives: given, waits: Vec::new() }))
}

/// The holes of a request that wait for what a program gives. Which cookies are sent depends on
/// the path.
pub(super) fn waits(ask: &Ask, compiled: &CompiledRequest) -> Vec<u16> {
    let is_given = |piece: &TemplatePiece| is_given(&ask.gives, piece);
    let holes = || compiled.request.holes.iter().zip(&compiled.fills);
    let mut of_path = holes().filter(|(hole, _)| hole.part == Part::Path);
    let path_waits = of_path.any(|(_, fill)| TemplatePiece::any(&fill.value.0, &is_given));
    let is_late =
        |piece: &TemplatePiece| is_given(piece) || path_waits && *piece == TemplatePiece::Cookies;
    let late =
        (0u16..).zip(holes()).filter(|(_, (_, fill))| TemplatePiece::any(&fill.value.0, &is_late));
    late.map(|(number, _)| number).collect()
}

fn is_given(given: &[(String, u16)], piece: &TemplatePiece) -> bool {
    given.iter().any(|(_, number)| *piece == TemplatePiece::Variable(*number))
}

/// What a session knows by now, as templates name it.
fn known(names: &Names) -> Vec<(String, TemplatePiece)> {
    let variables = (0u16..).zip(&names.variables).filter(|(_, (_, is_known))| *is_known);
    let variables =
        variables.map(|(number, (name, _))| (name.clone(), TemplatePiece::Variable(number)));
    let columns = (0u16..).zip(&names.data).flat_map(|(data, (set, columns))| {
        let columns = (0u16..).zip(columns);
        columns.map(move |(column, name)| {
            let value = TemplatePiece::Column { data, column };
            (format!("{set}.{name}"), value)
        })
    });
    variables.chain(columns).collect()
}

/// The number of the program that `exec` names.
fn program(node: &Node, programs: &mut Vec<Program>, inputs: &mut dyn ScenarioInputs) -> Read<u16> {
    let [file, arguments @ ..] = one_or_more(node) else {
        bail!(node.at, "no program: write exec: ./sign.py");
    };
    let name = &text(file, "the name of a program, such as ./sign.py,")?.text;
    let located = below(name)
        .and_then(|()| inputs.program(name).map_err(|why| format!("{} {why}", quoted(name))));
    let (path, folder) = located.or_else(|why| fault(file.at, why))?;
    if arguments.len() > ARGUMENTS_MAX {
        bail!(node.at, "too many arguments: expected at most {ARGUMENTS_MAX}");
    }
    let arguments = arguments.iter().map(|node| argument(node, inputs));
    let program = Program {
        name: name.to_string(),
        file: path,
        folder,
        arguments: arguments.collect::<Read<_>>()?,
        at: (file.at.line as u32, file.at.column as u32),
    };
    let is_same =
        |other: &Program| (&other.file, &other.arguments) == (&program.file, &program.arguments);
    if let Some(number) = programs.iter().position(is_same) {
        return Ok(number as u16);
    }
    if programs.len() >= PROGRAMS_MAX {
        bail!(node.at, "too many programs: expected at most {PROGRAMS_MAX} in a scenario");
    }
    programs.push(program);
    Ok((programs.len() - 1) as u16)
}

/// An argument: the program is started before any session begins.
fn argument(node: &Node, inputs: &mut dyn ScenarioInputs) -> Read<String> {
    let written = template::read_settled(node, "an argument of the program", inputs)?;
    if written.contains('\0') {
        bail!(node.at, "an argument has no NUL: leave it out");
    }
    Ok(written)
}
