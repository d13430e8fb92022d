package tools.servers;

import java.io.IOException;
import java.util.List;
import org.apache.lucene.util.Version;
import org.elasticsearch.Build;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.action.ActionRequest;
import org.elasticsearch.action.ActionRequestValidationException;
import org.elasticsearch.action.ActionResponse;
import org.elasticsearch.action.ActionType;
import org.elasticsearch.action.support.ActionFilters;
import org.elasticsearch.action.support.TransportAction;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.ClusterState;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.common.io.stream.StreamOutput;
import org.elasticsearch.injection.guice.Inject;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.action.RestToXContentListener;
import org.elasticsearch.tasks.Task;
import org.elasticsearch.transport.TransportService;
import org.elasticsearch.xcontent.ToXContentObject;
import org.elasticsearch.xcontent.XContentBuilder;

/** GET and HEAD /, which the test distribution of Elasticsearch lacks. The action has its real name, so that security asks for the same privilege. */
final class Main {
    static final ActionType<Answer> ACTION = new ActionType<>("cluster:monitor/main");

    static final class Request extends ActionRequest {
        @Override
        public ActionRequestValidationException validate() {
            return null;
        }
    }

    static final class Answer extends ActionResponse implements ToXContentObject {
        private final String node;
        private final ClusterState state;

        Answer(String node, ClusterState state) {
            this.node = node;
            this.state = state;
        }

        @Override
        public void writeTo(StreamOutput out) {
            throw new UnsupportedOperationException("it never leaves its node");
        }

        @Override
        public XContentBuilder toXContent(XContentBuilder builder, Params params) throws IOException {
            Build build = Build.current();
            builder.startObject().field("name", node).field("cluster_name", state.getClusterName().value());
            builder.field("cluster_uuid", state.metadata().clusterUUID()).startObject("version");
            builder.field("number", build.qualifiedVersion()).field("build_flavor", build.flavor());
            builder.field("build_type", build.type().displayName()).field("build_hash", build.hash());
            builder.field("build_date", build.date()).field("build_snapshot", build.isSnapshot());
            builder.field("lucene_version", Version.LATEST.toString());
            builder.field("minimum_wire_compatibility_version", build.minWireCompatVersion());
            builder.field("minimum_index_compatibility_version", build.minIndexCompatVersion());
            return builder.endObject().field("tagline", "You Know, for Search").endObject();
        }
    }

    /** Public, as the server makes it by reflection. */
    public static final class Action extends TransportAction<Request, Answer> {
        private final ClusterService cluster;

        @Inject
        public Action(TransportService transport, ActionFilters filters, ClusterService cluster) {
            super(ACTION.name(), filters, transport.getTaskManager(), Runnable::run);
            this.cluster = cluster;
        }

        @Override
        protected void doExecute(Task task, Request request, ActionListener<Answer> listener) {
            listener.onResponse(new Answer(cluster.getNodeName(), cluster.state()));
        }
    }

    static final class Handler extends BaseRestHandler {
        @Override
        public String getName() {
            return "main_action";
        }

        @Override
        public List<Route> routes() {
            return List.of(new Route(RestRequest.Method.GET, "/"), new Route(RestRequest.Method.HEAD, "/"));
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
            return channel -> client.execute(ACTION, new Request(), new RestToXContentListener<>(channel));
        }
    }

    private Main() {}
}
