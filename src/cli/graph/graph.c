/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The graph command: the layers that would read the images, as a volfile or as a picture. */
#include "btrfs-walk/graph.h"

#include "cli/common/output_format.h"

struct graph_state {
    enum bw_graph_format format;
};

static const char *const formats[] = {[BW_GRAPH_VOLFILE] = "volfile", [BW_GRAPH_DOT] = "dot", NULL};

static const struct cmd_option options[] = {
    {0, "format", "volfile|dot", "print a volfile (default), or a graph for Graphviz",
     CMD_WORD(struct graph_state, format, formats)},
    {0},
};

static struct bw_error *list(struct cmd_format *format, void *state)
{
    const struct graph_state *graph = state;
    if (format->rows)
        return bw_fs_write_layers(format->session.fs, &format->stream);
    return bw_fs_print_graph(format->session.fs, graph->format, cmd_write, &format->output);
}

const struct command cmd_graph = {
    .name = "graph",
    .topic = cmd_topic_developers,
    .operands = "IMAGE...",
    .summary = "Prints the graph of layers through which the images are read.",
    .details =
        "\n"
        "The output is a volfile: every layer with its options and the layers below it. You\n"
        "can edit it and pass it to any command with --graph. The output includes the effect\n"
        "of --graph, --insert and --xlator-option. 'btrfs-walk xlators' lists the types of\n"
        "layers.\n\n"
        "In --xlator-option NAME.KEY=VALUE and --insert TYPE@VOLUME[,KEY=VALUE...], NAME and\n"
        "VOLUME are the name of a layer, a type ('storage/file'), or a pattern ('device-*')\n"
        "that selects all matching layers. The name of a new layer combines both:\n"
        "'trace@verify'. A comma in a value is written '\\,'. Sizes take K, M, G, T, P or E;\n"
        "times take ns, us, ms, s, m or h. '-' as a file to write is stderr; --graph - reads\n"
        "stdin.\n",
    .examples = "  btrfs-walk graph disk.img > disk.vol           save it for editing\n"
                "  btrfs-walk --graph disk.vol                    list the files through it\n"
                "  btrfs-walk graph --format dot disk.img | dot -Tsvg > graph.svg\n"
                "  btrfs-walk graph -o layer,layer_type disk.img  a list of the layers\n"
                "  btrfs-walk graph --insert debug/trace@verify disk.img\n",
    .options = options,
    .record = "layerinfo",
    .plan = &(const struct cmd_format_plan){.list = list, .depth = CMD_OPEN_GRAPH},
    .state_size = sizeof(struct graph_state),
};
