// The blanks between tokens, as the printer has them where a line is not broken otherwise: an instruction a line, two
// columns a body, a blank line between computations. Lines that are broken inside an instruction stay broken.

#include "Features.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace hloc::lsp {

namespace {

/// A token, or a comment between tokens.
struct Piece {
  enum class Kind { Token, LineComment, BlockComment };
  Kind kind;
  uint32_t begin, end;
  const ScannedToken *token; ///< null: a comment
};

void addComments(llvm::StringRef text, uint32_t begin, uint32_t end, std::vector<Piece> &pieces) {
  while (true) {
    const size_t at = text.take_front(end).find('/', begin);
    if (at == llvm::StringRef::npos)
      return;
    const bool isLine = text.substr(at).starts_with("//");
    const size_t close = isLine ? text.find_first_of("\n\r", at) : text.find("*/", at + 2) + 2;
    const auto last = uint32_t(std::min<size_t>(close < at ? end : close, end));
    pieces.push_back({isLine ? Piece::Kind::LineComment : Piece::Kind::BlockComment, uint32_t(at), last, nullptr});
    begin = last;
  }
}

std::vector<Piece> piecesOf(const TextScan &scan) {
  std::vector<Piece> pieces;
  pieces.reserve(scan.tokens.size() + 1);
  uint32_t end = 0;
  for (const ScannedToken &token : scan.tokens) {
    addComments(scan.text, end, token.begin, pieces);
    pieces.push_back({Piece::Kind::Token, token.begin, token.end, &token});
    end = token.end;
  }
  addComments(scan.text, end, uint32_t(scan.text.size()), pieces);
  return pieces;
}

class Formatter {
public:
  Formatter(const TextScan &scan, unsigned indentation) : scan(scan), indentation(indentation), pieces(piecesOf(scan)) {
    const size_t first = scan.text.find('\n');
    newline = first != llvm::StringRef::npos && first > 0 && scan.text[first - 1] == '\r' ? "\r\n" : "\n";
  }

  std::vector<TextEdit> edits() {
    for (size_t i = 0; i < pieces.size(); ++i) {
      enter(pieces[i]);
      if (i > 0)
        settle(pieces[i - 1], pieces[i], i + 1 < pieces.size() ? &pieces[i + 1] : nullptr);
      leave(pieces[i]);
    }
    if (!pieces.empty())
      change(pieces.back().end, uint32_t(scan.text.size()), newline);
    return std::move(made);
  }

private:
  bool has(const Piece &piece, ScannedToken::Flags flag) const { return piece.token && piece.token->is(flag); }
  char first(const Piece &piece) const { return scan.text[piece.begin]; }
  bool isPunctuation(const Piece &piece, char c) const {
    return piece.token && piece.token->kind == TokenKind::Punctuation && first(piece) == c;
  }
  static Role role(const Piece &piece) { return piece.token ? piece.token->role : Role::Other; }

  static bool isJoined(const Piece &piece) {
    return role(piece) == Role::InstructionName && piece.token->kind == TokenKind::Attribute;
  }

  void change(uint32_t begin, uint32_t end, const std::string &wanted) {
    const llvm::StringRef now = scan.text.slice(begin, end);
    const bool isBlank = now.find_first_not_of(" \t\r\n") == llvm::StringRef::npos;
    if (isBlank && now != wanted)
      made.push_back({{begin, end}, wanted});
  }

  /// Levels count from where a piece stands: what closes a body stands outside it.
  void enter(const Piece &piece) {
    if (has(piece, ScannedToken::Closes) && level > 0)
      --level;
    const bool isHead = has(piece, ScannedToken::StartsStatement) &&
                        (role(piece) == Role::ComputationName || scan.text.substr(piece.begin).starts_with("ENTRY"));
    if (isHead) // the one before it may not be closed
      level = 0;
  }

  void leave(const Piece &piece) {
    if (has(piece, ScannedToken::Opens))
      ++level;
    if (isJoined(piece)) // `x=`
      made.push_back({{piece.end - 1, piece.end - 1}, " "});
    if (!has(piece, ScannedToken::Shape))
      openInShape = 0;
    else if (llvm::StringRef("[{").contains(first(piece)))
      ++openInShape;
    else if (llvm::StringRef("]}").contains(first(piece)) && openInShape > 0)
      --openInShape;
  }

  std::string lineBreak(unsigned lines, unsigned columns) const {
    std::string text;
    for (unsigned i = 0; i < lines; ++i)
      text += newline;
    return text + std::string(columns, ' ');
  }

  void settle(const Piece &before, const Piece &piece, const Piece *after) {
    const llvm::StringRef now = scan.text.slice(before.end, piece.begin);
    const auto lines = unsigned(std::min<size_t>(now.count('\n'), 2));
    std::string wanted = wantedBetween(before, piece, after, now, lines);
    // Blanks that keep tokens apart stay.
    const char a = scan.text[before.end - 1], b = first(piece);
    if (wanted.empty() && !now.empty() && ((isIdentifierBody(a) && isIdentifierBody(b)) || a == '-' || b == '='))
      wanted = " ";
    change(before.end, piece.begin, wanted);
  }

  std::string wantedBetween(const Piece &before, const Piece &piece, const Piece *after, llvm::StringRef now,
                            unsigned lines) const {
    const bool isKept = (before.token && before.token->kind == TokenKind::Invalid) ||
                        (piece.token && piece.token->kind == TokenKind::Invalid) ||
                        (has(before, ScannedToken::Verbatim) && has(piece, ScannedToken::Verbatim));
    if (isKept)
      return now.str();
    if (piece.kind == Piece::Kind::LineComment && lines == 0)
      return now.empty() ? " " : now.str();
    const bool isLed = before.kind == Piece::Kind::BlockComment && lines == 0 &&
                       scan.text.take_front(before.begin).rtrim(" \t").ends_with("\n"); // by a comment in its line
    if (!isLed && (has(piece, ScannedToken::StartsStatement) || has(piece, ScannedToken::Closes)))
      return statementBreak(before, piece, lines);
    if (piece.kind != Piece::Kind::Token && lines > 0) { // it stands where the next statement will
      const bool isLast = !after || has(*after, ScannedToken::StartsStatement) || has(*after, ScannedToken::Closes) ||
                          !after->token || piece.kind == Piece::Kind::LineComment;
      return lineBreak(has(before, ScannedToken::Opens) ? 1 : lines, isLast ? level * indentation : continuation());
    }
    if (lines > 0)
      return lineBreak(1, continuation());
    if (before.kind == Piece::Kind::BlockComment || piece.kind == Piece::Kind::BlockComment)
      return now.empty() ? "" : " ";
    return onOneLine(before, piece, now);
  }

  unsigned continuation() const { return (level + 2) * indentation; }

  std::string statementBreak(const Piece &before, const Piece &piece, unsigned lines) const {
    lines = std::max(lines, 1u);
    if (has(before, ScannedToken::Opens) || has(piece, ScannedToken::Closes))
      lines = 1;
    else if (level == 0 && has(before, ScannedToken::Closes))
      lines = 2;
    return lineBreak(lines, level * indentation);
  }

  std::string onOneLine(const Piece &before, const Piece &piece, llvm::StringRef now) const {
    if (has(before, ScannedToken::Shape) && has(piece, ScannedToken::Shape))
      return isPunctuation(before, ',') && openInShape == 0 ? " " : "";
    if (has(piece, ScannedToken::Opens))
      return role(before) == Role::AttributeKey ? "" : " ";
    if (role(before) == Role::AttributeKey)
      return "";
    if (isJoined(before))
      return " ";
    if (role(before) == Role::InstructionName)
      return isPunctuation(piece, '=') ? " " : now.str();
    if (isPunctuation(before, '=') || (before.token && before.token->kind == TokenKind::Arrow) ||
        (piece.token && piece.token->kind == TokenKind::Arrow))
      return " ";
    if (isPunctuation(piece, ',') || isPunctuation(piece, ')') || isPunctuation(piece, ':') ||
        isPunctuation(piece, '}') || isPunctuation(piece, '#') || isPunctuation(before, '(') ||
        isPunctuation(before, '{') || isPunctuation(before, '#'))
      return "";
    if (isPunctuation(before, ',') || isPunctuation(before, ':'))
      return " ";
    if (isPunctuation(piece, '('))
      return role(before) == Role::Opcode ? "" : " ";
    const bool behindShape = has(before, ScannedToken::Shape);
    return behindShape || !now.empty() ? " " : "";
  }

  const TextScan &scan;
  unsigned indentation;
  std::vector<Piece> pieces;
  std::string newline;
  unsigned level = 0;
  unsigned openInShape = 0; ///< square brackets and braces: dimensions and layouts
  std::vector<TextEdit> made;
};

} // namespace

/// From the first to the last, with what is between them.
static TextEdit joined(llvm::StringRef text, const std::vector<TextEdit> &edits) {
  TextEdit whole{{edits.front().range.begin, edits.back().range.end}, ""};
  uint32_t at = whole.range.begin;
  for (const TextEdit &edit : edits) {
    whole.text += text.slice(at, edit.range.begin);
    whole.text += edit.text;
    at = edit.range.end;
  }
  return whole;
}

void formatting(Document &document, SourceRange range, unsigned indentation, Out &out) {
  constexpr size_t most = 1000;
  std::vector<TextEdit> edits = formattingEdits(document.scan(), indentation);
  llvm::erase_if(edits,
                 [&](const TextEdit &edit) { return edit.range.begin < range.begin || edit.range.end > range.end; });
  if (edits.size() > most)
    edits = {joined(document.text(), edits)};
  out.array([&] {
    for (const TextEdit &edit : edits)
      out.object([&] {
        writeRange(out, "range", document.lines(), edit.range);
        out.attribute("newText", textValue(edit.text));
      });
  });
}

std::vector<TextEdit> formattingEdits(const TextScan &scan, unsigned indentation) {
  // A string that does not end in its line may end in another: what looks like words behind it may be its letters.
  const bool hasOpenString = llvm::any_of(scan.tokens, [&](const ScannedToken &token) {
    return token.kind == TokenKind::Invalid && (scan.text[token.begin] == '"' || scan.text[token.begin] == '\'');
  });
  if (hasOpenString)
    return {};
  return Formatter(scan, indentation).edits();
}

} // namespace hloc::lsp
