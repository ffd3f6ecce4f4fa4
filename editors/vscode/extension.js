// Starts `hloc lsp` and connects it with the editor.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("hloc");
  const server = { command: settings.get("path"), args: ["lsp", ...settings.get("arguments")] };
  client = new LanguageClient("hloc", "HLO (hloc)", server, { documentSelector: [{ language: "hlo" }] });
  await client.start();
}

async function restart() {
  await client?.stop().catch(() => {}); // of one that has not started there is nothing to stop
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("hloc") && restart()));
  await start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
