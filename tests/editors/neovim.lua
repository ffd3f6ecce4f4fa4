-- Neovim with editors/nvim/hlo.lua, as a user has it: nvim --headless -u NONE -l or -S this, with HLOC, FILE and ROOT in the
-- environment. Prints what it finds, a line a check; check-neovim reads them.
local function say(name, value) io.stdout:write(name .. ": " .. value .. "\n") end

local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 10000) or {}
  for _, answer in pairs(answers) do
    return answer.result
  end
end

local function run()
  dofile(os.getenv("ROOT") .. "/editors/nvim/hlo.lua").setup({ cmd = { os.getenv("HLOC"), "lsp", "--time-limit=0" } })
  vim.cmd("edit " .. os.getenv("FILE"))
  say("filetype", vim.bo.filetype)
  local ready = vim.wait(10000, function()
    local client = vim.lsp.buf_get_clients(0)[1] or select(2, next(vim.lsp.buf_get_clients(0)))
    return client and client.initialized ~= false and client.server_capabilities ~= nil
  end, 20)
  say("attached", tostring(ready))
  local function goToUse()
    vim.fn.search("to_apply=", "we")
    vim.fn.cursor(vim.fn.line("."), vim.fn.col(".") + 2)
  end
  goToUse()
  local params = vim.lsp.util.make_position_params()
  say("hover", vim.inspect(ask("textDocument/hover", params) or {}):match("a computation of %d+ instructions") or "nothing")
  local found = ask("textDocument/definition", params)
  say("definition", tostring(found and (found.range.start.line + 1)))
  -- An edit of the buffer, as the user's keys make it, and its diagnostic.
  local line = vim.fn.search("ROOT", "w")
  vim.api.nvim_buf_set_lines(0, line, line, false, { "  wrong = f32[] nagate(x)" })
  vim.wait(10000, function() return #vim.diagnostic.get(0) > 0 end, 20)
  local diagnostic = vim.diagnostic.get(0)[1] or {}
  say("diagnostic", tostring(diagnostic.message) .. " in " .. tostring((diagnostic.lnum or 0) - line))
  vim.api.nvim_buf_set_lines(0, line, line + 1, false, {})
  vim.wait(10000, function() return #vim.diagnostic.get(0) == 0 end, 20)
  say("after undoing", tostring(#vim.diagnostic.get(0)))
  goToUse()
  vim.lsp.buf.rename("renamed.one")
  vim.wait(10000, function() return vim.fn.search("renamed.one", "nw") > 0 end, 20)
  say("renamed", tostring(select(2, table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n"):gsub("renamed%.one", ""))))
end

local fine, problem = pcall(run)
if not fine then
  say("failed", tostring(problem))
end
vim.cmd("qall!")
