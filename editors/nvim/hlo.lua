-- Starts `hloc lsp` for HLO files: dofile("hlo.lua").setup({ cmd = { "hloc", "lsp" } }). Neovim 0.7 and later.
local M = {}

local function attach(cmd, buffer)
  local config = { name = "hloc", cmd = cmd, root_dir = vim.fn.getcwd() }
  if vim.lsp.start then -- 0.8
    return vim.lsp.start(config, { bufnr = buffer })
  end
  M.client = M.client or vim.lsp.start_client(config)
  if M.client then
    vim.lsp.buf_attach_client(buffer, M.client)
  end
end

function M.setup(options)
  local cmd = options and options.cmd or { "hloc", "lsp" }
  local group = vim.api.nvim_create_augroup("hloc", {})
  vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
    group = group, pattern = "*.hlo", callback = function() vim.bo.filetype = "hlo" end })
  vim.api.nvim_create_autocmd("FileType", {
    group = group, pattern = "hlo", callback = function(event)
      local buffer = event.buf or vim.api.nvim_get_current_buf()
      vim.bo[buffer].commentstring = "// %s"
      vim.bo[buffer].shiftwidth = 2
      vim.bo[buffer].expandtab = true
      attach(cmd, buffer)
    end })
end

return M
