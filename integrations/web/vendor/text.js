// Markdown with HTML off, then sanitised: nothing from a model reaches the page unescaped.
import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";

export { DOMPurify, MarkdownIt };
