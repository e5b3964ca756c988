import Admin
import Caching
import Message
import Provisioning
import Rules
import Settings

/// `larder recipe list|show|test|hosts`: what Larder knows about package ecosystems.
func recipeCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let words = arguments.words
    switch (words.first, words.count) {
    case ("hosts", 1): return recipeHosts(arguments, console)
    case ("list", 1): return listRecipes(arguments, console)
    case ("show", 2): return try showRecipe(words[1], arguments, console)
    case ("test", 2): return try testRecipes(words[1], arguments, console)
    default:
        throw UsageError(
            "recipe takes list, show NAME, test URL or hosts", hint: "larder recipe list shows all recipes")
    }
}

private func listRecipes(_ arguments: Arguments, _ console: Console) -> Int32 {
    if arguments.has(.json) {
        var writer = JSONWriter()
        writer.array { json in
            for recipe in RecipeBook.all {
                json.object {
                    $0.member("name", recipe.name)
                    $0.member("about", recipe.about)
                }
            }
        }
        console.print(String(decoding: writer.bytes, as: UTF8.self))
    } else {
        for recipe in RecipeBook.all { console.print(padded(recipe.name, 13) + recipe.about) }
    }
    return ExitStatus.done
}

private func showRecipe(_ name: String, _ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard let file = RecipeBook.files.first(where: { $0.name == name }) else {
        throw .unknown("recipe", name, among: RecipeBook.files.map(\.name))
    }
    console.print(String(decoding: file.bytes, as: UTF8.self))
    return ExitStatus.done
}

/// Says which rule of the configuration decides about a GET of the URL, and how.
private func testRecipes(_ url: String, _ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard let request = RuleRequest(url: url) else {
        throw UsageError("\"\(url)\" is no URL", hint: "recipe test takes a URL such as http://host/path")
    }
    let reading = readConfiguration(arguments)
    for error in reading.errors { console.error("\(error)") }
    guard let configuration = reading.configuration else { return ExitStatus.usage }
    let rules = configuration.cacheRules
    let rule = rules.handling(of: request).rule.map { rules.rules[$0 - 1] }
    if arguments.has(.json) {
        var writer = JSONWriter()
        writer.object { json in
            json.member("url", url)
            guard let rule else { return }
            json.member("rule", rule.number)
            if let recipe = rule.recipe { json.member("recipe", recipe) }
            if let note = rule.note { json.member("note", note) }
            json.member("text", rule.text)
            let others = configuration.otherClaims(on: request, than: rule)
            guard !others.isEmpty else { return }
            json.key("others")
            json.array { json in
                for other in others {
                    json.object {
                        $0.member("recipe", other.recipe ?? "")
                        if let note = other.note { $0.member("note", note) }
                    }
                }
            }
        }
        console.print(String(decoding: writer.bytes, as: UTF8.self))
        return ExitStatus.done
    }
    guard let rule else {
        console.print("no rule and no recipe: RFC 9111 decides")
        return ExitStatus.done
    }
    let place = rule.recipe.map { "recipe \($0)" } ?? "cache.rules[\(rule.number)]"
    console.print("\(place): \(rule.note ?? "\(rule.conditions)")")
    for part in rule.parts where part.name != "recipe" && part.name != "note" {
        console.print("  \(padded(part.name, 22))\(part.values.joined(separator: ", "))")
    }
    for other in configuration.otherClaims(on: request, than: rule) {
        console.print("less special: recipe \(other.recipe ?? ""): \(other.note ?? "\(other.conditions)")")
    }
    return ExitStatus.done
}

extension RuleRequest {
    /// A GET of the URL by a client of this machine. Returns nil if the text is not the URL of a resource.
    fileprivate init?(url: String) {
        guard let uri = TargetURI(Array(url.utf8)), let host = DestinationHost(uri.host.utf8) else { return nil }
        self.init(
            client: IPAddress(v4: 0x7F00_0001), method: .get, scheme: uri.scheme, destination: host, port: uri.port,
            isTunnel: false, pathAndQuery: uri.pathAndQuery[...])
    }
}
