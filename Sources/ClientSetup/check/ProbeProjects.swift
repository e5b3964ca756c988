/// Projects that need something from `{url}`, so that the tool of the project asks for it. Nothing that the tool could take is there.
enum ProbeProjects {
    /// The parent of the project is in the repository. Maven refuses a repository that is reached over http.
    static let maven = """
        <project><modelVersion>4.0.0</modelVersion><artifactId>probe</artifactId><packaging>pom</packaging>
        <parent><groupId>larder.internal</groupId><artifactId>check</artifactId><version>1</version><relativePath/></parent>
        <repositories><repository><id>check</id><url>{url}</url></repository></repositories></project>
        """

    static let gradle = """
        repositories { maven { url "{url}" } }
        configurations { check }
        dependencies { check "larder.internal:check:1" }
        task probe { doLast { configurations.check.files } }
        """

    static let composer = """
        { "repositories": [ { "packagist.org": false }, { "type": "composer", "url": "{url}" } ],
          "config": { "secure-http": false }, "require": { "larder/check": "1.0" } }
        """

    /// The dependency names its source. Otherwise some versions would ask the public index as well.
    static let poetry = """
        [tool.poetry]
        name = "probe"
        version = "1"
        description = ""
        authors = []
        [tool.poetry.dependencies]
        python = "*"
        larder-check = { version = "1", source = "check" }
        [[tool.poetry.source]]
        name = "check"
        url = "{url}/simple"
        """

    /// A source with the name `pypi` takes the place of the public index.
    static let pdm = """
        [project]
        name = "probe"
        version = "1"
        requires-python = ">=3.8"
        dependencies = ["larder-check"]
        [[tool.pdm.source]]
        name = "pypi"
        url = "{url}/simple"
        """

    static let dotnet = """
        <Project Sdk="Microsoft.NET.Sdk">
          <PropertyGroup>
            <TargetFramework>netstandard2.0</TargetFramework>
            <DisableImplicitFrameworkReferences>true</DisableImplicitFrameworkReferences>
          </PropertyGroup>
          <ItemGroup><PackageReference Include="Larder.Check" Version="1.0.0" /></ItemGroup>
        </Project>
        """

    static let nuget = """
        <configuration>
          <packageSources><clear /><add key="check" value="{url}/index.json" /></packageSources>
        </configuration>
        """
}
