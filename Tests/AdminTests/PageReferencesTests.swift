import Message
import Testing

@testable import larder

private let page = TargetURI("http://example.org/dir/page.html".utf8)!

/// One row: markup, and the URLs it names, in order.
struct PageRow: Sendable, CustomTestStringConvertible {
    var meaning: String
    var text: String
    var urls: [String]
    var testDescription: String { meaning }

    init(_ meaning: String, _ text: String, _ urls: String...) {
        self.meaning = meaning
        self.text = text
        self.urls = urls
    }
}

private func urls(_ references: [PageReference]) -> [String] {
    references.map { String(decoding: $0.target.normalised, as: UTF8.self) }
}

@Suite("larder warm --page: references of a page")
struct PageReferencesTests {
    static let elements: [PageRow] = [
        PageRow("script", "<script src=a.js></script>", "http://example.org/dir/a.js"),
        PageRow("image", "<img src='/a.png'>", "http://example.org/a.png"),
        PageRow("image, in capitals", "<IMG SRC=\"A.png\">", "http://example.org/dir/A.png"),
        PageRow("image of a path without scheme", "<img src=//cdn.example/a.png>", "http://cdn.example/a.png"),
        PageRow("https", "<img src=https://cdn.example/a.png>", "https://cdn.example/a.png"),
        PageRow("stylesheet", "<link rel=stylesheet href=a.css>", "http://example.org/dir/a.css"),
        PageRow("alternate stylesheet", "<link rel='Alternate StyleSheet' href=a.css>", "http://example.org/dir/a.css"),
        PageRow("icon", "<link href=/favicon.ico rel=\"shortcut icon\">", "http://example.org/favicon.ico"),
        PageRow(
            "preload", "<link rel=preload as=image href=a.png imagesrcset='b.png 2x'>", "http://example.org/dir/a.png",
            "http://example.org/dir/b.png"),
        PageRow("manifest", "<link rel=manifest href=app.json>", "http://example.org/dir/app.json"),
        PageRow("a link elsewhere", "<link rel=canonical href=/x><link rel=next href=/y><link href=/z>"),
        PageRow("an anchor is no sub-resource", "<a href=/x>x</a><form action=/y></form>"),
        PageRow(
            "video", "<video src=a.mp4 poster=a.jpg><source src=b.webm><track src=c.vtt></video>",
            "http://example.org/dir/a.mp4", "http://example.org/dir/a.jpg", "http://example.org/dir/b.webm",
            "http://example.org/dir/c.vtt"),
        PageRow(
            "audio, embed, object", "<audio src=a.ogg></audio><embed src=b.svg><object data=c.svg></object>",
            "http://example.org/dir/a.ogg", "http://example.org/dir/b.svg", "http://example.org/dir/c.svg"),
        PageRow(
            "picture", "<picture><source srcset='a.webp, b.webp 2x'><img src=a.png></picture>",
            "http://example.org/dir/a.webp", "http://example.org/dir/b.webp", "http://example.org/dir/a.png"),
        PageRow(
            "an image that submits", "<input type=IMAGE src=a.png><input type=text src=b.png>",
            "http://example.org/dir/a.png"),
        PageRow("iframe", "<iframe src=inner.html></iframe>", "http://example.org/dir/inner.html"),
        PageRow(
            "SVG", "<svg><image href=a.png /><use xlink:href='b.svg#x'/><use href='#y'/></svg>",
            "http://example.org/dir/a.png", "http://example.org/dir/b.svg"),
        PageRow(
            "background of old", "<body background=a.gif><td background=b.gif>", "http://example.org/dir/a.gif",
            "http://example.org/dir/b.gif"),
        PageRow("style element", "<style>b{background:url(a.png)}</style>", "http://example.org/dir/a.png"),
        PageRow("style attribute", "<p style=\"background:url('a.png')\">", "http://example.org/dir/a.png"),
        PageRow("noscript", "<noscript><img src=a.png></noscript>", "http://example.org/dir/a.png"),
        PageRow("once each", "<img src=a.png><img src='a.png'><img src=./a.png>", "http://example.org/dir/a.png"),
        PageRow("nothing", ""),
    ]
    @Test(arguments: elements) func `elements that load something are found`(_ row: PageRow) {
        #expect(urls(pageReferences(Array(row.text.utf8), at: page)) == row.urls)
    }

    static let nasty: [PageRow] = [
        PageRow("a comment is no markup", "<!-- <img src=a.png> --><img src=b.png>", "http://example.org/dir/b.png"),
        PageRow(
            "comments that end at once", "<!--><img src=a.png><!---><img src=b.png>", "http://example.org/dir/a.png",
            "http://example.org/dir/b.png"),
        PageRow("a comment that ends with a bang", "<!-- --!><img src=a.png>", "http://example.org/dir/a.png"),
        PageRow("dashes within a comment", "<!-- a -- > ---><img src=a.png>", "http://example.org/dir/a.png"),
        PageRow(
            "an unclosed comment swallows the rest", "<img src=a.png><!-- <img src=b.png>",
            "http://example.org/dir/a.png"),
        PageRow("a declaration", "<!DOCTYPE html><?xml version='1'?><img src=a.png>", "http://example.org/dir/a.png"),
        PageRow("a bogus comment", "<!weird <img src=a.png><img src=b.png>", "http://example.org/dir/b.png"),
        PageRow(
            "markup in a script is text", "<script>document.write('<img src=a.png>')</script><img src=b.png>",
            "http://example.org/dir/b.png"),
        PageRow(
            "what looks like the end of a script", "<script></scripty><img src=a.png></SCRIPT ><img src=b.png>",
            "http://example.org/dir/b.png"),
        PageRow("an unclosed script", "<script src=a.js><img src=b.png>", "http://example.org/dir/a.js"),
        PageRow("textarea and title are text", "<title><img src=a.png></title><textarea><img src=b.png></textarea>"),
        PageRow("an end tag with attributes", "</p title='>' ><img src=a.png>", "http://example.org/dir/a.png"),
        PageRow("an end tag opens no raw text", "</script><img src=a.png>", "http://example.org/dir/a.png"),
        PageRow("a lone <", "1 < 2 <3 <img src=a.png> < ", "http://example.org/dir/a.png"),
        PageRow("a > within quotes", "<img alt='a > b' src=\"a.png\">", "http://example.org/dir/a.png"),
        PageRow("attributes without space", "<img alt=\"x\"src=\"a.png\"id=y>", "http://example.org/dir/a.png"),
        PageRow(
            "slashes between attributes", "<img/src=a.png/><img///src='b.png'/>", "http://example.org/dir/a.png/",
            "http://example.org/dir/b.png"),
        PageRow("space around =", "<img src \n=\t a.png >", "http://example.org/dir/a.png"),
        PageRow("the first of two attributes counts", "<img src=a.png src=b.png>", "http://example.org/dir/a.png"),
        PageRow("= begins a name", "<img =src=a.png><img src==b.png>", "http://example.org/dir/=b.png"),
        PageRow("an attribute without value", "<img src><img src=><img src=''>"),
        PageRow("a tag that the page ends in", "<img src=a.png><img src=b.png", "http://example.org/dir/a.png"),
        PageRow("a quote that the page ends in", "<img src=a.png><img src='b.png>", "http://example.org/dir/a.png"),
        PageRow(
            "references to characters", "<img src='a?b=1&amp;c=2&#x26;d&#38;e&quot;'>",
            "http://example.org/dir/a?b=1&c=2&d&e%22"),
        PageRow(
            "no references to characters", "<img src='a?b&lt=1&ampx=2&copy=3&#;&#xg'>",
            "http://example.org/dir/a?b&lt=1&ampx=2&copy=3&"),
        PageRow("references without semicolon", "<img src='a?b&amp'>", "http://example.org/dir/a?b&"),
        PageRow(
            "a number beyond Unicode", "<img src='a&#x110000;&#99999999999999999999;&#0;b'>",
            "http://example.org/dir/a%EF%BF%BD%EF%BF%BD%EF%BF%BDb"),
        PageRow(
            "spaces and line ends around and within", "<img src=' \n a\tb c.png \n'>",
            "http://example.org/dir/ab%20c.png"),
        PageRow("backslashes", "<img src='\\\\cdn.example\\a.png?b\\c'>", "http://cdn.example/a.png?b\\c"),
        PageRow("beyond ASCII", "<img src='ä.png?ö'>", "http://example.org/dir/%C3%A4.png?%C3%B6"),
        PageRow(
            "what may not stand in a URL", "<img src='a\"<>`{}.png?`{}'>",
            "http://example.org/dir/a%22%3C%3E%60%7B%7D.png?`{}"),
        PageRow(
            "dots", "<img src=../../../a.png><img src=http://x.example/a/./../b>", "http://example.org/a.png",
            "http://x.example/b"),
        PageRow(
            "fragments go, alone they are nothing", "<img src=a.svg#x><img src=#y>", "http://example.org/dir/a.svg"),
        PageRow(
            "what is not fetched",
            "<img src='data:image/png;base64,AA=='><img src=javascript:x><img src=about:blank><img src=mailto:a@b>"),
        PageRow(
            "what is no URL",
            "<img src='http://'><img src='http://a b/'><img src='http://u:p@h/'><img src='http://h:99999/'>"),
        PageRow("a NUL", "<img\u{0} src=a.png><img src=b\u{0}.png>", "http://example.org/dir/b%00.png"),
    ]
    @Test(arguments: nasty) func `nasty HTML is read as browsers read it`(_ row: PageRow) {
        #expect(urls(pageReferences(Array(row.text.utf8), at: page)) == row.urls)
    }

    static let bases: [PageRow] = [
        PageRow("base", "<base href=/other/><img src=a.png>", "http://example.org/other/a.png"),
        PageRow("the first base counts", "<base href=/b/><base href=/c/><img src=a.png>", "http://example.org/b/a.png"),
        PageRow(
            "a base without URL is none", "<base target=_top><base href=/b/><img src=a.png>",
            "http://example.org/b/a.png"),
        PageRow(
            "from where it stands on", "<img src=a.png><base href=/b/><img src=a.png>", "http://example.org/dir/a.png",
            "http://example.org/b/a.png"),
        PageRow(
            "of another host", "<base href='https://cdn.example/x/y'><img src=a.png>", "https://cdn.example/x/a.png"),
        PageRow("a base that leads nowhere", "<base href='data:,x'><img src=a.png>", "http://example.org/dir/a.png"),
        PageRow("styles heed it", "<base href=/b/><style>@import 'a.css';</style>", "http://example.org/b/a.css"),
    ]
    @Test(arguments: bases) func `base changes how references are resolved`(_ row: PageRow) {
        #expect(urls(pageReferences(Array(row.text.utf8), at: page)) == row.urls)
    }

    @Test func `stylesheets and frames are recognised, because they have references of their own`() {
        let html =
            "<link rel=stylesheet href=a><style>@import 'b';c{d:url(c)}</style><iframe src=d></iframe><img src=e>"
        let kinds = pageReferences(Array(html.utf8), at: page).map(\.kind)
        #expect(kinds == [.stylesheet, .stylesheet, .other, .page, .other])
    }

    @Test func `the number of references of a page is limited`() {
        let html = (0..<20_000).map { "<img src=\($0)>" }.joined()
        #expect(pageReferences(Array(html.utf8), at: page).count == 5000)
    }

    @Test func `a tag with very many attributes is read`() {
        let html = "<img " + (0..<5000).map { "a\($0)=b " }.joined() + " src=a.png><img src=b.png>"
        #expect(urls(pageReferences(Array(html.utf8), at: page)) == ["http://example.org/dir/b.png"])
    }

    /// Every prefix of a page is a page: none traps, and none names what the whole does not.
    @Test func `a page can end at any byte`() {
        let rows = Self.nasty + Self.elements + Self.bases
        let html = Array(rows.map(\.text).filter { !$0.contains("<base") }.joined(separator: "\n").utf8)
        for length in stride(from: 0, through: html.count, by: 1) {
            _ = pageReferences(Array(html.prefix(length)), at: page)
        }
    }
}

@Suite("larder warm --page: srcset")
struct SourceSetTests {
    static let rows: [(text: String, urls: [String])] = [
        ("", []), (" , ,", []), ("a.png", ["a.png"]), ("a.png 1x, b.png 2x", ["a.png", "b.png"]),
        ("a.png, b.png", ["a.png", "b.png"]), ("a.png 100w,\n\tb.png 200w ,c.png", ["a.png", "b.png", "c.png"]),
        ("a,b.png 2x", ["a,b.png"]), ("a.png,b.png", ["a.png,b.png"]), ("a.png,, b.png,", ["a.png", "b.png"]),
        ("data:image/png;base64,AAAA 1x, b.png 2x", ["data:image/png;base64,AAAA", "b.png"]),
        ("a.png f(1,2), b.png", ["a.png", "b.png"]), ("a.png )x(, b.png", ["a.png"]),
    ]
    @Test(arguments: rows) func `all URLs of a srcset are found`(_ row: (text: String, urls: [String])) {
        #expect(sourceSetReferences(Array(row.text.utf8)).map { String(decoding: $0, as: UTF8.self) } == row.urls)
    }
}

@Suite("larder warm --page: stylesheets")
struct StylesheetTests {
    static let rows: [(text: String, urls: [String])] = [
        ("a{b:url(c.png)}", ["c.png"]), ("a{b:URL( 'c.png' )}", ["c.png"]), ("a{b:url(\"c d.png\")}", ["c d.png"]),
        ("a{b:url(  c.png\n)}", ["c.png"]), ("@import 'a.css';", ["a.css"]), ("@import url(a.css) screen;", ["a.css"]),
        ("@IMPORT\"a.css\"layer(x) supports(b: url(y));c{d:url(e)}", ["a.css", "e"]),
        ("@import url('a.css');@import 'b.css'", ["a.css", "b.css"]),
        ("@namespace url(http://www.w3.org/1999/xhtml);@namespace svg 'x';a{b:url(c)}", ["c"]),
        ("@font-face{src:url(a.woff2) format('woff2'),url(b.woff) format(\"woff\")}", ["a.woff2", "b.woff"]),
        ("/* url(a) @import 'b'; */c{d:url(e)/* ) */}", ["e"]), ("a{b:url(/*c*/)}", ["/*c*/"]),
        ("a{content:'url(b)'}", []), ("a{content:\"\\\" url(b)\"}", []), ("a{b:url(c\\29 .png)}", ["c).png"]),
        ("a{b:u\\72l(c)}", ["c"]), ("a{b:url('c\\\nd')}", ["cd"]), ("a{b:url('c\nd:url(e)}", ["e"]),
        ("a{b:xurl(c);d:curl(e);f:url-x(g)}", []),
        ("a{b:image-set('a.png' 1x, url(b.png) 2x type('image/png'))}", ["a.png", "b.png"]),
        ("a{b:-webkit-image-set(\"a.png\" 1x);c:'d'}", ["a.png"]), ("a{b:url()}", []), ("a{b:url( )}", []),
        ("a{b:url(", []), ("a{b:url(c", ["c"]), ("a{b:url('c", ["c"]), ("/* unclosed url(a)", []), ("a{b:url(\\", []),
        ("@import", []), ("@", []), ("@media print{a{b:url(c)}}", ["c"]), ("}{;)(url(a)", ["a"]),
    ]
    @Test(arguments: rows) func `URLs in CSS are found`(_ row: (text: String, urls: [String])) {
        let found = StylesheetScanner.references(in: Array(row.text.utf8))
        #expect(found.map { String(decoding: $0.text, as: UTF8.self) } == row.urls)
    }

    @Test func `imports are told from images, and both are relative to the stylesheet`() {
        let sheet = TargetURI("http://example.org/css/main.css".utf8)!
        let references = stylesheetReferences(Array("@import 'b.css';c{d:url(../i.png)}".utf8), at: sheet)
        #expect(urls(references) == ["http://example.org/css/b.css", "http://example.org/i.png"])
        #expect(references.map(\.kind) == [.stylesheet, .other])
    }
}
