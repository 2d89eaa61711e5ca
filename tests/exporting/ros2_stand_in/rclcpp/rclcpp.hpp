// A stand-in for the parts of rclcpp that the example uses, for tests alone: messages are lines of standard input and
// output. A line of input is `name position velocity` of each joint; a line of output has the numbers of a command.
// Parameters are numbers after `NAME:=` among the arguments of the program.
#pragma once
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <sensor_msgs/msg/joint_state.hpp>

namespace rclcpp {

inline std::map<std::string, std::vector<double>> given;
inline std::function<void(const sensor_msgs::msg::JointState::SharedPtr)> callback;

template <class Message> struct Publisher {
    using SharedPtr = std::shared_ptr<Publisher>;
    void publish(const Message &message) {
        for (double x : message.data) std::printf("%.17g ", x);
        std::printf("\n");
    }
};
template <class Message> struct Subscription {
    using SharedPtr = std::shared_ptr<Subscription>;
};
struct Logger {};

class Node {
public:
    using SharedPtr = std::shared_ptr<Node>;
    explicit Node(const std::string &) {}
    double declare_parameter(const std::string &name, double value) {
        return given.count(name) ? given[name].at(0) : value;
    }
    std::vector<double> declare_parameter(const std::string &name, const std::vector<double> &value) {
        return given.count(name) ? given[name] : value;
    }
    template <class Message> typename Publisher<Message>::SharedPtr create_publisher(const std::string &, int) {
        return std::make_shared<Publisher<Message>>();
    }
    template <class Message, class Call>
    typename Subscription<Message>::SharedPtr create_subscription(const std::string &, int, Call call) {
        callback = call;
        return std::make_shared<Subscription<Message>>();
    }
    Logger get_logger() { return {}; }
};

inline void init(int argc, char **argv) {
    for (int k = 1; k < argc; ++k) {
        const std::string text = argv[k];
        std::istringstream numbers(text.substr(text.find(":=") + 2));
        for (double x; numbers >> x;) given[text.substr(0, text.find(":="))].push_back(x);
    }
}
inline void spin(const Node::SharedPtr &) {
    for (std::string line; std::getline(std::cin, line);) {
        auto state = std::make_shared<sensor_msgs::msg::JointState>();
        std::istringstream words(line);
        std::string name;
        for (double q, qd; words >> name >> q >> qd;) {
            state->name.push_back(name);
            state->position.push_back(q);
            state->velocity.push_back(qd);
        }
        callback(state);
    }
}
inline void shutdown() {}

}  // namespace rclcpp

#define RCLCPP_WARN(logger, ...) ((void)(logger), std::fprintf(stderr, __VA_ARGS__), std::fprintf(stderr, "\n"))
