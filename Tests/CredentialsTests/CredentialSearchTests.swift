import Credentials
import Message
import Testing

private let plain = "ghp_Qm7Zt0RkW2vLx9Bd4HsYc6NpEuJa1FgT3oXi"

private func bytes(_ text: String) -> ArraySlice<UInt8> { Array(text.utf8)[...] }

@Suite("placeholders: where a request may carry a credential of the client's own")
struct CredentialSearchTests {
    private static let search: CredentialSearch = {
        var places = PlaceholderPlaces()
        places.fields = ["X-Mine"]
        places.query = ["mine"]
        places.form = ["client_secret"]
        places.json = [["token"], ["auth", "value"], ["deep"], ["deep", "value"]]
        return CredentialSearch(places)
    }()

    // MARK: targets

    static let targets: [(target: String, place: String?)] = [
        ("/a", nil), ("/a?x=1", nil), ("/token/1?q=token", nil), ("/a?", nil), ("/a?&;&", nil),
        ("/a?token=own", "the member token of the query"),
        ("/a?token=\(plain)", nil), ("/a?token=&x", nil), ("/a?token", nil),
        ("/a?x=1;token=own", "the member token of the query"),
        ("/a?token=\(plain);x=own", "the member token of the query"),
        ("/a?token=;own", "the member token of the query"),
        ("/a?token=\(plain)&token=own", "the member token of the query"),
        ("/a?token=own&token=\(plain)", "the member token of the query"),
        ("/a?token[]=own", "the member token[] of the query"),
        ("/a?token[0]=own", "the member token[0] of the query"),
        ("/a?token%5B%5D=own", "the member token[] of the query"),
        ("/a?token[x]=own", "the member token[x] of the query"),
        ("/a?token%00=own", "the member token? of the query"),
        ("/a?token%00x=own", "the member token?x of the query"),
        ("/a?%2574oken=own", "the member %74oken of the query".replacing("%", with: "?")),
        ("/a?token%FF=own", "the member token? of the query"),
        ("/a?+token=own", "the member ?token of the query"),
        ("/a?X-Auth-Token=own", "the member x-auth-token of the query"),
        ("/a?auth=own", "the member auth of the query"),
        ("/a?page_token=2&key=a&code=b", nil),
        ("/a?reset_password=1&has_secret=true", nil),
        ("/a?mine=own", "the member mine of the query"), ("/a?Mine[]=1", "the member mine[] of the query"),
        ("/a?mine=\(plain)", nil),
        // A server that reads forms looks for their members here as well.
        ("/a?ClientSecret=own", "the member clientsecret of the query"),
        ("/a;jsessionid=own/b", "the parameter jsessionid of the path"),
        ("/a;v=1;mine=own", "the parameter mine of the path"), ("/a;v=1/b;w", nil),
    ]

    @Test(arguments: targets) func inTargets(target: String, place: String?) {
        #expect(Self.search.place(inTarget: bytes(target), beside: Array(plain.utf8)) == place)
    }

    @Test(arguments: [
        ("Authorization", true), ("x-mine", true), ("X-Authorization", true), ("X-Session-Token", true),
        ("Cookie", true), ("Proxy-Authorization", false), ("Accept", false), ("X-CSRF-Token", false),
    ])
    func inFields(name: String, isCredential: Bool) {
        #expect(Self.search.isCredential(field: bytes(name)) == isCredential)
    }

    // MARK: bodies

    /// - Returns: the member, "none", or why the body cannot be examined.
    private func found(_ body: String, _ types: [String]) -> String {
        guard let readings = Self.search.readings(types: types.map(bytes)) else { return "not examined" }
        do throws(BodyReadings.Obstacle) {
            return try Self.search.member(in: Array(body.utf8), readings, beside: Array(plain.utf8)) ?? "none"
        } catch {
            return "\(error)"
        }
    }

    static let values: [(json: String, member: String)] = [
        (#"{"a": 1}"#, "none"), (#"{"token": "own"}"#, "token"), (#"{"token": "\#(plain)"}"#, "none"),
        (#"{"token": ""}"#, "none"), (#"{"token": null}"#, "none"), (#"{"token": true}"#, "none"),
        (#"{"token": 123}"#, "token"), (#"{"token": -0.5e3}"#, "token"), (#"{"token": []}"#, "none"),
        (#"{"token": {}}"#, "none"), (#"{"token": ["x"]}"#, "token"), (#"{"token": [[], [null, 7]]}"#, "token"),
        (#"{"token": {"value": "x"}}"#, "token"), (#"{"token": {"own": null}}"#, "token"),
        (#"{"token": "\#(plain)", "token": "own"}"#, "token"), (#"{"token": "own", "token": "\#(plain)"}"#, "token"),
        (#"{"Token": "own"}"#, "token"), (#"{"to\u212Aen": "own"}"#, "token"), (#"{"to_ken": "own"}"#, "token"),
        (#"{"token\u0000x": "own"}"#, "token"), (#"{"\u0074oken": "own"}"#, "token"),
        (#"[{"token": "own"}]"#, "token"), (#"{"auth": {"value": "own"}}"#, "auth.value"),
        (#"{"auth": [{"value": 5}]}"#, "auth.value"), (#"{"auth": {"other": "x"}}"#, "none"),
        (#"{"auth": "x"}"#, "none"), (#"{"x": {"token": "own"}}"#, "none"),
        (#"{"deep": {"value": "\#(plain)"}}"#, "none"), (#"{"deep": {"value": "own"}}"#, "deep.value"),
        (#"{"deep": {"other": "own"}}"#, "deep"),
    ]

    @Test(arguments: values) func asJSON(json: String, member: String) {
        #expect(found(json, ["application/json"]) == member)
        #expect(found(json, ["application/octet-stream"]) == member)
        // With a byte order mark in front it is no JSON, but some servers read it.
        #expect(found("\u{FEFF} \n" + json, []) == "noJSON(isDeclared: false)")
    }

    static let malformed = [
        "", "x", #"{"token": "own"} x"#, #"{"token": "own",}"#, #"{"x\ud800": 1, "token": "own"}"#, "{'token': 'own'}",
        "{token: 1}", "// x\n{}",
    ]

    @Test(arguments: malformed) func notAsJSON(body: String) {
        #expect(found(body, ["application/json; charset=utf-8"]) == "noJSON(isDeclared: true)")
    }

    static let otherTypes: [(types: [String], body: String, found: String)] = [
        ([], #"{"token": "own"}"#, "token"), ([""], #"{"token": "own"}"#, "token"),
        (["text/json"], #"{"token": "own"}"#, "token"), (["text/json"], "x", "noJSON(isDeclared: true)"),
        (["application/vnd.api+json; ext=x"], #"{"token": "own"}"#, "token"),
        (["text/plain"], #"{"token": "own"}"#, "token"), (["text/plain"], "a note", "none"),
        (["image/png"], #" {"token": "own"}"#, "token"), (["image/png"], "\u{89}PNG", "none"),
        (["application/x-www-form-urlencoded"], #"{"token": "own"}"#, "token"),
        (["application/x-ndjson"], "{\"a\": 1}\n{\"token\": \"own\"}\n", "token"),
        (["application/x-ndjson"], "{\"a\": 1}\n{\"b\": 2}\n", "none"),
        (["application/octet-stream"], "{\u{0}\"\u{0}", "noJSON(isDeclared: false)"),
        (["application/octet-stream"], "\u{0}[\u{0}", "noJSON(isDeclared: false)"),
        (["application/octet-stream"], "/*x*/{}", "noJSON(isDeclared: false)"),
        (["application/octet-stream"], "/home", "none"), (["application/octet-stream"], "client_secret=own", "none"),
        (["application/json", "text/plain"], #"{"token": "own"}"#, "token"),
        (["application/x-www-form-urlencoded"], "client_secret=own", "client_secret"),
        (["application/x-www-form-urlencoded"], "client_secret=\(plain)&a=b", "none"),
        (["application/x-www-form-urlencoded"], "client_secret=\(plain)&client_secret=own", "client_secret"),
        (["application/x-www-form-urlencoded"], "a=b;client_secret=own", "client_secret"),
        (["application/x-www-form-urlencoded"], "client_secret[]=own", "client_secret[]"),
        (["application/x-www-form-urlencoded"], "client.secret=own", "client.secret"),
        (["application/x-www-form-urlencoded"], "client_secret%00=own", "client_secret?"),
        (["application/x-www-form-urlencoded"], "clientSecret=7", "clientsecret"),
        (["application/x-www-form-urlencoded"], "mine=own", "mine"),
        (["application/x-www-form-urlencoded"], "a=client_secret&client_secret=", "none"),
        ([], "client_secret=own", "client_secret"), (["nonsense"], "client_secret=own", "client_secret"),
        (["text/plain"], "a=b\r\nclient_secret=own", "client_secret"),
        (["application/json", "application/x-www-form-urlencoded"], "client_secret=own", "client_secret"),
        (["application/json, application/x-www-form-urlencoded"], "client_secret=own", "client_secret"),
        (["application/json x"], "client_secret=own", "client_secret"),
        (["image/png; application/x-www-form-urlencoded"], "client_secret=own", "client_secret"),
        (["multipart/form-data; boundary=x"], "", "type"), (["image/png", "Multipart/Mixed"], "", "type"),
        (["application/xml"], "<token>own</token>", "type"), (["application/yaml"], "token: own", "type"),
        (["application/cbor"], "", "type"), (["application/json; charset=utf-16"], "{}", "charset"),
        (["application/x-www-form-urlencoded; Charset=\"IBM037\""], "a=b", "charset"),
        (["text/plain; charset=utf-8; charset=utf-7"], "a", "charset"),
        (["application/x-www-form-urlencoded; charset=UTF-8"], "a=b", "none"),
    ]

    @Test(arguments: otherTypes) func inEachReadingOfAType(types: [String], body: String, found: String) {
        #expect(self.found(body, types) == found)
    }

    @Test func whereNothingIsListedBodiesAreNotExamined() {
        #expect(CredentialSearch(PlaceholderPlaces()).readings(types: [bytes("application/json")]) == nil)
    }

    // MARK: while a body comes

    private func required(json: Bool = true, form: Bool = false, _ types: [String]) -> BodyRequirement? {
        var places = PlaceholderPlaces()
        places.isRequired = true
        if json { places.json = [["token"]] }
        if form { places.form = ["token"] }
        return BodyRequirement(places, credential: "forge", types: types.map(bytes))
    }

    @Test(arguments: [
        ("application/octet-stream", false, "", false), ("application/octet-stream", false, " \u{FEFF}", false),
        ("application/octet-stream", false, "P", true), ("application/octet-stream", false, "\n{", false),
        ("application/octet-stream", false, "/", false), ("application/octet-stream", false, "/x", true),
        ("application/octet-stream", true, "P", true), ("application/json", false, "P", false),
        ("text/plain", false, "P", true), ("text/plain", true, "P", false), ("multipart/mixed", false, "P", false),
    ])
    func itsBeginningMaySayThatItHoldsNone(type: String, form: Bool, beginning: String, isSettled: Bool) throws {
        let requirement = try #require(required(form: form, [type]))
        #expect(requirement.isSettled(by: Array(beginning.utf8)) == isSettled)
    }

    private func refusal(_ check: () throws(PlaceholderFault) -> Void) -> String? {
        do throws(PlaceholderFault) { try check(); return nil } catch { return error.text }
    }

    @Test func `the text of a refusal names the next step of the client`() throws {
        let front = "the body cannot be examined, and only placeholders of the credential forge are allowed in it: "
        let json = try #require(required(["application/json"]))
        let bytes = try #require(required(["image/png"]))
        let parts = try #require(required(["multipart/mixed"]))
        #expect(refusal { () throws(PlaceholderFault) in try json.check(isCoded: false, isTooLong: false) } == nil)
        #expect(
            refusal { () throws(PlaceholderFault) in try json.check(isCoded: true, isTooLong: false) } == front
                + "it has a Content-Encoding; send it without")
        #expect(
            refusal { () throws(PlaceholderFault) in try json.check(isCoded: false, isTooLong: true) } == front
                + "it is longer than Larder keeps bodies; send a shorter one")
        #expect(refusal { () throws(PlaceholderFault) in try bytes.check(isCoded: false, isTooLong: true) } == nil)
        #expect(refusal { () throws(PlaceholderFault) in try bytes.check(beginning: [0x7B]) } != nil)
        #expect(refusal { () throws(PlaceholderFault) in try bytes.check(beginning: [0x89]) } == nil)
        #expect(
            refusal { () throws(PlaceholderFault) in try parts.check(isCoded: false, isTooLong: false) } == front
                + "its type has members that Larder does not read; send application/json or a form")
        #expect(
            refusal { () throws(PlaceholderFault) in
                try json.check(Array(#"{"token": 1}"#.utf8), beside: nil)
            }
                == "the member token of the body holds a credential of the client's own, and only placeholders of the credential forge are allowed here"
        )
        var places = PlaceholderPlaces()
        places.json = [["token"]]
        #expect(BodyRequirement(places, credential: "forge", types: []) == nil)
    }
}
