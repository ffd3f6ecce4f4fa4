"""`hloc lsp` with a client that knows the protocol: pytest-lsp, which is of lsprotocol's types and complains of what is not
in them, with the capabilities of three editors. check-lsp runs it; HLOC names the program."""
import asyncio
import os
import pathlib

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

URI = "file:///module.hlo"
TEXT = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY %main (x: f32[64,512]) -> f32[64] {
  %x = f32[64,512]{1,0} parameter(0)  // é𝄞 before it
  %zero = f32[] constant(0)
  /* 𝄞 */ %y = f32[64,512] exponential(%x)
  ROOT %rows = f32[64]{0} reduce(%y, %zero), dimensions={1}, to_apply=sum
}
"""


@pytest_lsp.fixture(params=["visual-studio-code", "neovim", "emacs"],
                    config=ClientServerConfig(server_command=[os.environ["HLOC"], "lsp"]))
async def client(request, lsp_client: LanguageClient):
    answer = await lsp_client.initialize_session(types.InitializeParams(
        capabilities=client_capabilities(request.param), process_id=None, root_uri=None))
    lsp_client.encoding = answer.capabilities.position_encoding
    lsp_client.capabilities_offered = answer.capabilities
    yield lsp_client
    await lsp_client.shutdown_session()


def units(client, text):
    """How long a text is in the client's units: each of the three editors prefers others."""
    encoding, size = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[client.encoding]
    return len(text.encode(encoding)) // size


def position(client, text, needle, behind=0):
    before = text[:text.index(needle) + behind]
    return types.Position(line=before.count("\n"), character=units(client, before.rsplit("\n", 1)[-1]))


def at(client, needle, behind=0):
    return {"text_document": types.TextDocumentIdentifier(uri=URI), "position": position(client, TEXT, needle, behind)}


def letter(client, line, character):
    """Which letter of a line a position is before."""
    columns = [units(client, line[:count]) for count in range(len(line) + 1)]
    return columns.index(character)


def words(client, text, found):
    """What ranges are about, with their lines."""
    lines, out = text.split("\n"), []
    for one in found:
        start, end = one.range.start, one.range.end
        assert start.line == end.line
        line = lines[start.line]
        out.append((start.line, line[letter(client, line, start.character):letter(client, line, end.character)]))
    return out


async def opened(client, text=TEXT):
    client.text_document_did_open(types.DidOpenTextDocumentParams(
        text_document=types.TextDocumentItem(uri=URI, language_id="hlo", version=1, text=text)))
    await client.wait_for_notification("textDocument/publishDiagnostics")


@pytest.mark.asyncio
async def test_diagnostics_follow_edits(client):
    await opened(client)
    assert not client.diagnostics[URI]
    for version, (needle, with_text, code) in enumerate([("exponential", "exponentail", "unknown-opcode"),
                                                         ("exponentail", "exponential", None)], 2):
        text = TEXT if version == 2 else TEXT.replace("exponential", "exponentail")
        client.text_document_did_change(types.DidChangeTextDocumentParams(
            text_document=types.VersionedTextDocumentIdentifier(uri=URI, version=version),
            content_changes=[types.TextDocumentContentChangePartial(
                range=types.Range(start=position(client, text, needle), end=position(client, text, needle, len(needle))), text=with_text)]))
        await client.wait_for_notification("textDocument/publishDiagnostics")
        assert [one.code for one in client.diagnostics[URI]] == ([code] if code else [])
        if code:
            assert "did you mean `exponential`?" in client.diagnostics[URI][0].message
            assert words(client, TEXT.replace("exponential", "exponentail"), client.diagnostics[URI]) == [(11, "exponentail")]


@pytest.mark.asyncio
async def test_hover_and_kernels(client):
    await opened(client)
    for _ in range(100):
        hover = await client.text_document_hover_async(types.HoverParams(**at(client, "(%y", 2)))
        if "cost model" in hover.contents.value:
            break
        await asyncio.sleep(0.1)
    assert "`f32[64,512]{1,0}`: 32,768 elements, 131,072 bytes (128 KiB), row-major" in hover.contents.value
    assert "us on h100 by the cost model" in hover.contents.value
    assert (hover.range.start.line, hover.range.start.character) == (12, 34)


@pytest.mark.asyncio
async def test_names(client):
    await opened(client)
    definition = await client.text_document_definition_async(types.DefinitionParams(**at(client, "(%y", 2)))
    assert words(client, TEXT, [definition]) == [(11, "y")]
    found = await client.text_document_references_async(types.ReferenceParams(
        **at(client, "%y = "), context=types.ReferenceContext(include_declaration=True)))
    assert words(client, TEXT, found) == [(11, "y"), (12, "y")]
    marked = await client.text_document_document_highlight_async(types.DocumentHighlightParams(**at(client, "to_apply=sum", 10)))
    assert words(client, TEXT, marked) == [(2, "sum"), (12, "sum")]
    ready = await client.text_document_prepare_rename_async(types.PrepareRenameParams(**at(client, "%zero", 2)))
    assert ready.placeholder == "zero"
    renamed = await client.text_document_rename_async(types.RenameParams(**at(client, "%zero", 2), new_name="none.0"))
    assert [edit.new_text for edit in renamed.changes[URI]] == ["none.0", "none.0"]
    with pytest.raises(Exception, match="is there already"):
        await client.text_document_rename_async(types.RenameParams(**at(client, "%zero", 2), new_name="x"))


@pytest.mark.asyncio
async def test_completion_outline_hints_tokens(client):
    await opened(client)
    found = await client.text_document_completion_async(types.CompletionParams(**at(client, "exponential", 3)))
    assert {"exponential", "exponential-minus-one"} <= {item.label for item in found.items}
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(
        text_document=types.TextDocumentIdentifier(uri=URI)))
    assert [(one.name, len(one.children)) for one in symbols] == [("sum", 3), ("main", 4)]
    whole = types.Range(start=types.Position(0, 0), end=types.Position(99, 0))
    document = types.TextDocumentIdentifier(uri=URI)
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(text_document=document, range=whole))
    assert [hint.label for hint in hints] == ["f32[]", "f32[]", "f32[64,512]", "f32[64,512]", "f32[]"]
    tokens = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(text_document=document))
    assert len(tokens.data) % 5 == 0 and len(tokens.data) > 5 * 40
    folds = await client.text_document_folding_range_async(types.FoldingRangeParams(text_document=document))
    assert [(one.start_line, one.end_line) for one in folds] == [(2, 5), (8, 12)]


@pytest.mark.asyncio
async def test_formatting(client):
    untidy = TEXT.replace("  %zero = f32[] ", "      %zero  =f32[ ]   ").replace("(a, b)", "( a,b )")
    await opened(client, untidy)
    edits = await client.text_document_formatting_async(types.DocumentFormattingParams(
        text_document=types.TextDocumentIdentifier(uri=URI), options=types.FormattingOptions(tab_size=2, insert_spaces=True)))
    text, lines = untidy, untidy.split("\n")
    offset = lambda place: sum(len(line) + 1 for line in lines[:place.line]) + letter(client, lines[place.line], place.character)
    for edit in reversed(edits):
        text = text[:offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end):]
    assert text == TEXT


@pytest.mark.asyncio
async def test_examples_have_no_diagnostics(client):
    for path in sorted(pathlib.Path(os.environ["HLO_EXAMPLES"]).rglob("*.hlo"))[::5]:
        uri = path.as_uri()
        client.text_document_did_open(types.DidOpenTextDocumentParams(
            text_document=types.TextDocumentItem(uri=uri, language_id="hlo", version=1, text=path.read_text())))
        await client.wait_for_notification("textDocument/publishDiagnostics")
        assert not client.diagnostics[uri], path
        client.text_document_did_close(types.DidCloseTextDocumentParams(
            text_document=types.TextDocumentIdentifier(uri=uri)))
        await client.wait_for_notification("textDocument/publishDiagnostics")
